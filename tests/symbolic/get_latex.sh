#!/bin/sh
# Gets pdflatex for the tests of the printed documents where none is found and Debian's packages are at hand. It never
# fails: without pdflatex those tests are skipped, and say so.
if command -v pdflatex >/dev/null 2>&1; then exit 0; fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
  echo "getting pdflatex for the tests of the printed documents"
  if (apt-get update && apt-get install --yes --no-install-recommends texlive-latex-base) >/dev/null 2>&1 </dev/null; then exit 0; fi
fi
echo "no pdflatex was found: the tests of the printed documents are skipped; install texlive-latex-base, or its like"
exit 0

#!/bin/sh
# Gets Chromium for the tests of the animation where none is found and Debian's packages are at hand. It never fails:
# without a browser those tests are skipped, and say so.
if [ -n "$LINKWRIGHT_CHROMIUM" ]; then exit 0; fi
for name in chromium chromium-browser google-chrome google-chrome-stable; do
  if command -v "$name" >/dev/null 2>&1; then exit 0; fi
done
if [ "$(uname)" = Darwin ] && [ -d "/Applications/Google Chrome.app" ]; then exit 0; fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
  echo "getting Chromium for the tests of the animation"
  if (apt-get update && apt-get install --yes --no-install-recommends chromium) >/dev/null 2>&1 </dev/null; then exit 0; fi
fi
echo "no Chromium was found: the tests of the animation are skipped; install it, or set LINKWRIGHT_CHROMIUM to it"
exit 0

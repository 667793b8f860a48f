// Bundles source/main.js and three.js into ../bundle.js, with three's licence in front.
import { readFileSync } from "node:fs";
import { build } from "esbuild";

const licence = readFileSync(new URL("node_modules/three/LICENSE", import.meta.url), "utf8");
const { version } = JSON.parse(readFileSync(new URL("node_modules/three/package.json", import.meta.url), "utf8"));

await build({
  entryPoints: ["source/main.js"],
  outfile: "../bundle.js",
  bundle: true,
  minify: true,
  format: "iife",
  target: ["es2022"],
  charset: "ascii",
  legalComments: "none",
  banner: {
    js: `/* Linkwright's viewer, built from viewer/web. It contains three.js ${version}:\n\n${licence.replace("©", "(c)").trim()}\n*/`,
  },
});

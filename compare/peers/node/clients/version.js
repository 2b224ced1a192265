import { readFileSync } from "node:fs";

/** The version of an installed package; some do not let it be imported. */
export function versionOf(name) {
  return JSON.parse(readFileSync(new URL(`../node_modules/${name}/package.json`, import.meta.url))).version;
}

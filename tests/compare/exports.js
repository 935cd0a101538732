// Reads an exported file with citation-js, and prints the studies as JSON.

const fs = require("node:fs");
const { Cite } = require("@citation-js/core");
require("@citation-js/plugin-ris");
require("@citation-js/plugin-bibtex");

const [form, path] = process.argv.slice(2);
const types = { ris: "@ris/file", bibtex: "@bibtex/text", "csl-json": "@csl/list+object" };
const text = fs.readFileSync(path, "utf-8");
const input = form === "csl-json" ? JSON.parse(text) : text;
const { data } = new Cite(input, { forceType: types[form], generateGraph: false });
const studies = data.map((item) => ({
  title: item.title ?? "",
  people: (item.author ?? []).length,
  year: String(item.issued?.["date-parts"]?.[0]?.[0] ?? ""),
  journal: item["container-title"] ?? "",
  volume: String(item.volume ?? ""),
  issue: String(item.issue ?? ""),
  doi: item.DOI ?? "",
  // Its BibTeX reader does not support abstracts.
  ...(form === "bibtex" ? {} : { abstract: item.abstract ?? "" }),
  url: item.URL ?? "",
}));
console.log(JSON.stringify(studies));

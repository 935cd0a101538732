// Reads a RIS or BibTeX file with citation-js, and prints the number of records and the time as JSON.

const fs = require("node:fs");
const { Cite } = require("@citation-js/core");
require("@citation-js/plugin-ris");
require("@citation-js/plugin-bibtex");

const path = process.argv[2];
const text = fs.readFileSync(path, "utf-8");
const forceType = path.endsWith(".ris") ? "@ris/file" : "@bibtex/text";
let [records, best] = [0, Infinity];
for (let run = 0; run < 3; run++) {
  const began = process.cpuUsage();
  records = new Cite(text, { forceType, generateGraph: false }).data.length;
  const { user, system } = process.cpuUsage(began);
  best = Math.min(best, (user + system) / 1e6);
}
console.log(JSON.stringify({ records, seconds: best }));

// A checker for Lingo programs that runs in Node.js and in the browser.
// It knows nothing of the grammar: it finds three frequent mistakes line by line.
//
//     node lingo_check.js program.lingo

"use strict";

const DEPRECATED = { load_index: "loadIndex" };
const MAX_LINE_LENGTH = 4096;

/** Blanks out the comment of a line, leaving a "#" inside a string alone. */
function stripComment(line) {
  let inString = false;
  for (let i = 0; i < line.length; i += 1) {
    if (line[i] === "\\" && inString) i += 1;
    else if (line[i] === '"') inString = !inString;
    else if (line[i] === "#" && !inString) return line.slice(0, i);
  }
  return line;
}

/** Returns the problems of a program as {code, line, message}, in line order. */
function checkProgram(source) {
  const problems = [];
  const added = new Map(); // name -> line of addVar
  const read = new Set();

  source.split("\n").forEach((raw, index) => {
    const line = index + 1;
    const text = stripComment(raw);

    if (raw.length > MAX_LINE_LENGTH) {
      problems.push({ code: "LNG-001", line, message: "line is too long" });
    }
    for (const [oldName, newName] of Object.entries(DEPRECATED)) {
      if (new RegExp(`\\b${oldName}\\s*\\(`).test(text)) {
        problems.push({ code: "LNG-901", line, message: `use ${newName} instead of ${oldName}` });
      }
    }
    for (const [, call, name] of text.matchAll(/\b(addVar|getVar|setVar|incVar)\s*\(\s*"([^"]+)"/g)) {
      if (call === "addVar") {
        if (!/^[A-Za-z]\w{0,63}$/.test(name)) {
          problems.push({ code: "LNG-105", line, message: `bad name "${name}"` });
        }
        added.set(name, line);
      } else if (call === "getVar") {
        read.add(name);
      }
    }
  });

  for (const [name, line] of added) {
    if (!read.has(name)) {
      problems.push({ code: "LNG-902", line, message: `"${name}" is never read` });
    }
  }
  return problems.sort((a, b) => a.line - b.line);
}

if (typeof module !== "undefined") {
  module.exports = { checkProgram, stripComment };
  if (require.main === module) {
    const source = require("fs").readFileSync(process.argv[2], "utf8");
    const problems = checkProgram(source);
    problems.forEach((p) => console.log(`${p.code} line ${p.line}: ${p.message}`));
    process.exit(problems.some((p) => !p.code.startsWith("LNG-9")) ? 1 : 0);
  }
}

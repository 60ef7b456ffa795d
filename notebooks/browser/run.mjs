// Runs a Python file in Pyodide under Node, with the package and without Numba; docs/browser.md says how.
//   node run.mjs PYODIDE PACKAGES FILE
// FILE lies inside the checkout. PYODIDE: the folder of pyodide.mjs, with wheels of its distribution; PACKAGES: a folder with the package lazy_loader.
import { relative, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, packages, file] = process.argv.slice(2).map((name) => resolve(name));
const root = resolve(import.meta.dirname, "../..");
const { loadPyodide } = await import(pathToFileURL(resolve(folder, "pyodide.mjs")));
const pyodide = await loadPyodide({ indexURL: folder });
await pyodide.loadPackage(["numpy", "scipy"], { messageCallback: () => {} });
pyodide.mountNodeFS("/mnt/root", root);
pyodide.mountNodeFS("/mnt/packages", packages);
pyodide.globals.set("file", relative(root, file));
pyodide.runPython(`
import os, runpy, sys
sys.path[:0] = ["/mnt/root", "/mnt/root/notebooks/browser", "/mnt/packages"]
sys.dont_write_bytecode = True
os.chdir("/mnt/root")
import without_numba
runpy.run_path(file, run_name="__main__")
`);

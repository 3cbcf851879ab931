// A module worker as somebody else writes it: Pyodide, and Python code by message.
let pyodide;

self.onmessage = async ({ data: { base, code } }) => {
  try {
    const { loadPyodide } = await import(`${base}pyodide/pyodide.mjs`);
    pyodide ??= loadPyodide({ indexURL: `${base}pyodide/` });
    const python = await pyodide;
    await python.loadPackage('micropip', { messageCallback() {} });
    python.globals.set('base', base);
    self.postMessage({ result: await python.runPythonAsync(code) });
  } catch (error) {
    self.postMessage({ error: String(error.message ?? error) });
  }
};

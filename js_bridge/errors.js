/** An error that Python and the page know by name: the name of a class of pyweb/errors.py. */
export class BridgeError extends Error {
  /** @param {string} [remedy] what helps, where it isn't what the class says */
  constructor(name, message, remedy) {
    super(message);
    this.name = name;
    if (remedy) this.remedy = remedy;
  }
}

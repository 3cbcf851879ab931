/** An error that Python and the page know by name: the name of a class of pyweb/errors.py. */
export class BridgeError extends Error {
  constructor(name, message) {
    super(message);
    this.name = name;
  }
}

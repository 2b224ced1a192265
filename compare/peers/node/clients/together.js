/**
 * A batch for a client whose commands are sent together when they are called in
 * the same turn of the event loop: the commands, and then all of their replies.
 */
export class Together {
  constructor(client) {
    this.client = client;
    this.promises = [];
  }

  get(key) {
    this.promises.push(this.client.get(key));
  }

  set(key, value) {
    this.promises.push(this.client.set(key, value));
  }

  /** The replies; an Error in place of each that failed. */
  async end() {
    try {
      return await Promise.all(this.promises);
    } catch {
      const settled = await Promise.allSettled(this.promises);
      return settled.map(({ value, reason }) => reason ?? value);
    }
  }
}

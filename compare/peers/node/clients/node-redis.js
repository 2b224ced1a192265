import { createClient, createCluster } from "redis";
import { versionOf } from "./version.js";
import { Together } from "./together.js";

export const version = versionOf("redis");
export const notes = ["commandOptions: no timeout"];

// A batch where one server has all keys; commands of a cluster's `multi` must not
// leave one node.
class Pipeline {
  constructor(client) {
    this.commands = client.multi();
    this.size = 0;
  }

  get(key) {
    this.size++;
    this.commands.get(key);
  }

  set(key, value) {
    this.size++;
    this.commands.set(key, value);
  }

  async end() {
    try {
      return await this.commands.execAsPipeline();
    } catch (error) {
      // It tells of the first that failed, and withholds what the others brought.
      return Array(this.size).fill(error);
    }
  }
}

export async function open({ host, port, cluster }) {
  const url = `redis://${host}:${port}`;
  // The default, a timeout of its own for every command, takes half of the speed.
  const commandOptions = { timeout: 0 };
  const socket = { reconnectStrategy: false };
  const client = cluster
    ? createCluster({ rootNodes: [{ url }], defaults: { socket }, commandOptions })
    : createClient({ url, socket, commandOptions });
  client.on("error", () => {}); // `connect` says it too
  await client.connect();
  return {
    get: (key) => client.get(key),
    set: (key, value) => client.set(key, value),
    batch: () => (cluster ? new Together(client) : new Pipeline(client)),
    connections: () => (cluster ? client.masters.length : 1),
  };
}

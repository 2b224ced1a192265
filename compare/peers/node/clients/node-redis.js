import { createClient, createCluster } from "redis";
import { versionOf } from "./version.js";
import { Together } from "./together.js";

export const version = versionOf("redis");
export const notes = ["commands of one turn of the event loop are sent together"];

export async function open({ host, port, cluster }) {
  const url = `redis://${host}:${port}`;
  const socket = { reconnectStrategy: false };
  const client = cluster ? createCluster({ rootNodes: [{ url }], defaults: { socket } }) : createClient({ url, socket });
  client.on("error", () => {}); // `connect` says it too
  await client.connect();
  return {
    get: (key) => client.get(key),
    set: (key, value) => client.set(key, value),
    batch: () => new Together(client),
    connections: () => (cluster ? client.masters.length : 1),
  };
}

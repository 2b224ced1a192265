// ioredis, and what was made of it.

import { Together } from "./together.js";

// A batch is a pipeline, where one server has all keys; a pipeline of a cluster
// must not leave one node, so there the automatic one is used.
class Pipeline {
  constructor(client) {
    this.pipeline = client.pipeline();
  }

  get(key) {
    this.pipeline.get(key);
  }

  set(key, value) {
    this.pipeline.set(key, value);
  }

  async end() {
    const replies = await this.pipeline.exec();
    return replies.map(([error, reply]) => error ?? reply);
  }
}

export async function openWith(Redis, { host, port, cluster, inFlight }) {
  // With few commands at once, waiting for more of them costs more than it saves.
  const common = { enableAutoPipelining: inFlight >= 64, lazyConnect: true };
  const client = cluster
    ? new Redis.Cluster([{ host, port }], { ...common, clusterRetryStrategy: () => null })
    : new Redis({ ...common, host, port, retryStrategy: () => null });
  client.on("error", () => {}); // `connect` says it too
  await client.connect();
  return {
    get: (key) => client.get(key),
    set: (key, value) => client.set(key, value),
    batch: () => (cluster ? new Together(client) : new Pipeline(client)),
    connections: () => (cluster ? client.nodes("master").length : 1),
  };
}

import { Batch, ClusterBatch, GlideClient, GlideClusterClient, Logger } from "@valkey/valkey-glide";
import { versionOf } from "./version.js";

export const version = versionOf("@valkey/valkey-glide");
export const notes = ["inflightRequestsLimit 2000", "requestTimeout 5 s"];

class Commands {
  constructor(client, batch) {
    this.client = client;
    this.commands = batch;
  }

  get(key) {
    this.commands.get(key);
  }

  set(key, value) {
    this.commands.set(key, value);
  }

  end() {
    return this.client.exec(this.commands, false);
  }
}

export async function open({ host, port, cluster }) {
  Logger.init("off");
  const configuration = { addresses: [{ host, port }], inflightRequestsLimit: 2000, requestTimeout: 5000 };
  const client = await (cluster ? GlideClusterClient : GlideClient).createClient(configuration);
  return {
    get: (key) => client.get(key),
    set: (key, value) => client.set(key, value),
    batch: () => new Commands(client, cluster ? new ClusterBatch(false) : new Batch(false)),
    connections: () => (cluster ? 5 : 1),
  };
}

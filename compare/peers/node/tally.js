// What is counted, and the JSON object made of it: compare/PROTOCOL.md.

import { streamCheck } from "./load.js";

export const WARMING = 0;
export const OPEN = 1;
export const OVER = 2;

export class Tally {
  constructor(options) {
    this.options = options;
    this.phase = WARMING;
    this.total = this.hits = this.misses = this.wrong = this.errors = 0;
    this.gets = this.sets = 0;
    this.most = 0;
    this.buckets = new Float64Array(64 * 48);
  }

  /** The window, in seconds from now. */
  schedule() {
    return new Promise((resolve) => {
      setTimeout(() => {
        const cpu = process.cpuUsage();
        const opened = process.hrtime.bigint();
        this.phase = OPEN;
        setTimeout(() => {
          this.seconds = Number(process.hrtime.bigint() - opened) / 1e9;
          const used = process.cpuUsage(cpu);
          this.phase = OVER;
          this.cpu = (used.user + used.system) * 1000;
          resolve();
        }, this.options.duration * 1000);
      }, this.options.warmup * 1000);
    });
  }

  /** A reply, or the Error in its place, that took so many milliseconds. */
  count(isSet, expected, reply, took) {
    let good = this.phase === OPEN;
    if (reply instanceof Error) {
      this.errors++;
      return;
    }
    if (isSet) {
      if (reply !== "OK") {
        this.wrong++;
        return;
      }
    } else if (reply === null) {
      if (good) this.misses++;
      good &&= this.options.misses;
    } else if (reply === expected && !this.options.misses) {
      if (good) this.hits++;
    } else {
      this.wrong++;
      return;
    }
    if (!good) return;
    this.total++;
    const nanoseconds = Math.round(took * 1e6);
    if (nanoseconds > this.most) this.most = nanoseconds;
    this.buckets[bucketOf(nanoseconds)]++;
  }

  percentile(share) {
    const rank = Math.max(1, Math.ceil(share * this.total));
    let seen = 0;
    for (let i = 0; i < this.buckets.length; i++) {
      seen += this.buckets[i];
      if (seen >= rank) return Math.min(bucketEnd(i), this.most);
    }
    return this.most;
  }

  report(client, version, connections, notes) {
    const { options } = this;
    return {
      schema: "redis-client-compare-peer/1", client, version, runtime: `node ${process.versions.node}`,
      operation: options.operation, ops_per_sec: this.total / this.seconds, duration_sec: this.seconds, total_ops: this.total,
      hits: this.hits, misses: this.misses, wrong: this.wrong, errors: this.errors,
      latency: {
        p50: this.percentile(0.5), p90: this.percentile(0.9), p95: this.percentile(0.95), p99: this.percentile(0.99),
        p99_9: this.percentile(0.999), max: this.most,
      },
      cpu_ns: this.cpu, all_get: this.gets, all_set: this.sets, connections, stream_check: streamCheck(options.seed), notes,
    };
  }
}

// 64 buckets for every power of two; below 128 one for every number.
function bucketOf(value) {
  if (value < 128) return value;
  const shift = (value > 0xffffffff ? 63 - Math.clz32(value / 4294967296) : 31 - Math.clz32(value)) - 6;
  return shift * 64 + Math.floor(value / 2 ** shift);
}

function bucketEnd(bucket) {
  if (bucket < 128) return bucket;
  const shift = Math.floor(bucket / 64) - 1;
  return (bucket - shift * 64 + 1) * 2 ** shift - 1;
}

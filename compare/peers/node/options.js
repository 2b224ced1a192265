// The command line: compare/PROTOCOL.md.

const numbers = ["port", "in-flight", "batch", "keys", "key-size", "value-size", "warmup", "duration", "connections"];
const words = ["host", "operation", "style", "json", "seed"];
// A draw whose lower half is below this is a SET.
const setBelow = { get: 0, set: 2 ** 32, mixed: 858993459 };

export function parseOptions(args) {
  const options = {
    host: "127.0.0.1", port: 6379, cluster: false, operation: "get", misses: false, inFlight: 1, style: "wait", batch: 64,
    keys: 100000, keySize: 16, valueSize: 512, warmup: 1, duration: 2, seed: "1", connections: 1,
  };
  for (let i = 0; i < args.length; i++) {
    const flag = args[i].replace(/^--/, "");
    const name = flag.replace(/-(.)/g, (_, letter) => letter.toUpperCase());
    if (flag === args[i]) throw new Error(`${flag}: unknown`);
    if (flag === "cluster" || flag === "misses") {
      options[name] = true;
      continue;
    }
    const value = args[++i];
    if (value === undefined || !(numbers.includes(flag) || words.includes(flag))) throw new Error(`--${flag}: unknown, or has no value`);
    options[name] = words.includes(flag) ? value : Number(value);
    if (Number.isNaN(options[name])) throw new Error(`--${flag} ${value}: not a number`);
  }
  if (!(options.operation in setBelow)) throw new Error("--operation: get, set or mixed");
  if (options.style !== "wait" && options.style !== "batch") throw new Error("--style: wait or batch");
  if (options.style === "batch" && options.inFlight % options.batch !== 0) throw new Error("--in-flight: not a multiple of the batch");
  options.setBelow = setBelow[options.operation];
  options.seed = BigInt(options.seed);
  return options;
}

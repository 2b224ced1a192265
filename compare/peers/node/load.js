// The stream of operations that everyone sends: compare/PROTOCOL.md.
//
// JavaScript's numbers hold 53 bits, and its BigInts are slow: so a word of 64
// bits is two numbers of 32 here, except before the clock starts.

const word = (1n << 64n) - 1n;
const gamma = 0x9e3779b97f4a7c15n;

function mix(z) {
  z = ((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n) & word;
  z = ((z ^ (z >> 27n)) * 0x94d049bb133111ebn) & word;
  return z ^ (z >> 31n);
}

const firstState = (seed, caller) => mix((seed + mix(BigInt(caller) + 1n)) & word);

/** The sum of the first thousand words of caller 0. */
export function streamCheck(seed) {
  let state = firstState(seed, 0);
  let sum = 0n;
  for (let i = 0; i < 1000; i++) {
    state = (state + gamma) & word;
    sum = (sum + mix(state)) & word;
  }
  return "0x" + sum.toString(16);
}

/** Keys, and the value of each, as strings. */
export class Load {
  constructor(options) {
    this.options = options;
    const prefix = options.misses ? "mis:" : "key:";
    this.keys = Array.from({ length: options.keys }, (_, n) => prefix + String(n).padStart(options.keySize - prefix.length, "0"));
    const block = Buffer.alloc(4096 + options.valueSize);
    let state = 1n;
    for (let i = 0; i < block.length; i++) {
      block[i] = 97 + Number(((mix(state) >> 32n) * 26n) >> 32n);
      state = (state + gamma) & word;
    }
    // Strings of their own, not parts of a long one: libraries copy them faster.
    this.values = Array.from({ length: 4096 }, (_, start) => block.latin1Slice(start, start + options.valueSize));
    this.starts = Uint16Array.from({ length: options.keys }, (_, n) => Number(mix(BigInt(n)) & 4095n));
  }

  value(number) {
    return this.values[this.starts[number]];
  }
}

/** The operations of one caller. */
export class Stream {
  constructor(options, caller) {
    const state = firstState(options.seed, caller);
    this.high = Number(state >> 32n);
    this.low = Number(state & 0xffffffffn);
    this.keys = options.keys;
    this.setBelow = options.setBelow;
    /** The number of the key drawn last, and whether it is for a SET. */
    this.number = 0;
    this.isSet = false;
  }

  draw() {
    const low = this.low + 0x7f4a7c15;
    this.high = (this.high + 0x9e3779b9 + (low > 0xffffffff ? 1 : 0)) >>> 0;
    this.low = low >>> 0;
    let h = this.high;
    let l = this.low;
    // z ^ (z >> 30), and so on: `product` leaves the upper half of a product.
    l ^= (l >>> 30) | (h << 2);
    h ^= h >>> 30;
    l = product(h, l, 0xbf58476d, 0x1ce4e5b9);
    h = productHigh;
    l ^= (l >>> 27) | (h << 5);
    h ^= h >>> 27;
    l = product(h, l, 0x94d049bb, 0x133111eb);
    h = productHigh;
    l ^= (l >>> 31) | (h << 1);
    h ^= h >>> 31;
    this.number = Math.floor(((h >>> 0) * this.keys) / 4294967296);
    this.isSet = l >>> 0 < this.setBelow;
  }
}

let productHigh = 0;

// The lower 64 bits of (h, l) * (bh, bl): returns the lower half.
function product(h, l, bh, bl) {
  const l0 = l & 0xffff;
  const l1 = l >>> 16;
  const b0 = bl & 0xffff;
  const b1 = bl >>> 16;
  const first = l0 * b0;
  const middle = l0 * b1 + l1 * b0 + (first >>> 16);
  productHigh = (l1 * b1 + Math.floor(middle / 65536) + Math.imul(l, bh) + Math.imul(h, bl)) | 0;
  return (first & 0xffff) | (middle << 16);
}

//! The stream of operations that everyone sends: compare/PROTOCOL.md.

use crate::options::Options;

// SplitMix64
const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

fn mix(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn first_state(seed: u64, caller: usize) -> u64 {
    mix(seed.wrapping_add(mix(caller as u64 + 1)))
}

/// The sum of the first thousand words of caller 0.
pub fn stream_check(seed: u64) -> u64 {
    let mut state = first_state(seed, 0);
    (0..1000).fold(0, |sum: u64, _| {
        state = state.wrapping_add(GAMMA);
        sum.wrapping_add(mix(state))
    })
}

/// Keys and values, made before the clock starts.
pub struct Load {
    pub options: Options,
    names: Vec<u8>,
    block: Vec<u8>,
}

impl Load {
    pub fn new(options: Options) -> Load {
        let prefix = if options.misses { "mis:" } else { "key:" };
        let width = options.key_size.saturating_sub(prefix.len());
        let names = (0..options.keys).flat_map(|n| format!("{prefix}{n:0width$}").into_bytes()).collect();
        let letter = |i: u64| b'a' + (((mix(1u64.wrapping_add(i.wrapping_mul(GAMMA))) >> 32) * 26) >> 32) as u8;
        let block = (0..4096 + options.value_size as u64).map(letter).collect();
        Load { options, names, block }
    }

    pub fn key(&self, operation: Operation) -> &[u8] {
        let start = operation.number as usize * self.options.key_size;
        &self.names[start..start + self.options.key_size]
    }

    pub fn value(&self, operation: Operation) -> &[u8] {
        let start = (mix(operation.number) & 4095) as usize;
        &self.block[start..start + self.options.value_size]
    }

    /// The operations of one caller, without an end.
    pub fn stream(&self, caller: usize) -> impl Iterator<Item = Operation> {
        let (keys, set_below) = (self.options.keys, self.options.set_below);
        let mut state = first_state(self.options.seed, caller);
        std::iter::repeat_with(move || {
            state = state.wrapping_add(GAMMA);
            let word = mix(state);
            Operation { number: ((word >> 32) * keys) >> 32, is_set: (word & 0xffff_ffff) < set_below }
        })
    }
}

/// One command: the number of its key, and whether it is a SET.
#[derive(Clone, Copy)]
pub struct Operation {
    pub number: u64,
    pub is_set: bool,
}

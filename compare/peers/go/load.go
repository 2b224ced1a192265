package main

import (
	"flag"
	"fmt"
	"strconv"
)

// options is the command line: compare/PROTOCOL.md.
type options struct {
	host               string
	port               int
	cluster            bool
	operation          string
	setBelow           uint64 // a draw whose lower half is below this is a SET
	misses             bool
	inFlight, batch    int
	style              string
	keys               int
	keySize, valueSize int
	warmup, duration   float64
	seed               uint64
	connections        int
}

func parseOptions(arguments []string) (options, error) {
	var o options
	var json string
	flags := flag.NewFlagSet("peer", flag.ContinueOnError)
	flags.StringVar(&o.host, "host", "127.0.0.1", "")
	flags.IntVar(&o.port, "port", 6379, "")
	flags.BoolVar(&o.cluster, "cluster", false, "")
	flags.StringVar(&o.operation, "operation", "get", "")
	flags.BoolVar(&o.misses, "misses", false, "")
	flags.IntVar(&o.inFlight, "in-flight", 1, "")
	flags.IntVar(&o.batch, "batch", 64, "")
	flags.StringVar(&o.style, "style", "wait", "")
	flags.IntVar(&o.keys, "keys", 100000, "")
	flags.IntVar(&o.keySize, "key-size", 16, "")
	flags.IntVar(&o.valueSize, "value-size", 512, "")
	flags.Float64Var(&o.warmup, "warmup", 1, "")
	flags.Float64Var(&o.duration, "duration", 2, "")
	flags.Uint64Var(&o.seed, "seed", 1, "")
	// Connections of these libraries serve one caller at a time.
	flags.IntVar(&o.connections, "connections", 1, "")
	flags.StringVar(&json, "json", "-", "")
	if err := flags.Parse(arguments); err != nil {
		return o, err
	}
	switch o.operation {
	case "get":
		o.setBelow = 0
	case "set":
		o.setBelow = 1 << 32
	case "mixed":
		o.setBelow = 858993459
	default:
		return o, fmt.Errorf("--operation %s: get, set or mixed", o.operation)
	}
	switch {
	case o.style != "wait" && o.style != "batch":
		return o, fmt.Errorf("--style %s: wait or batch", o.style)
	case o.inFlight < 1 || o.batch < 1 || o.keys < 1 || flags.NArg() > 0 || json != "-":
		return o, fmt.Errorf("a flag is wrong")
	case o.style == "batch" && o.inFlight%o.batch != 0:
		return o, fmt.Errorf("--in-flight: not a multiple of the batch")
	}
	return o, nil
}

// callers is how many there are, and how many commands each has at once.
func (o options) callers() (int, int) {
	if o.style == "batch" {
		return o.inFlight / o.batch, o.batch
	}
	return o.inFlight, 1
}

// SplitMix64
const gamma = 0x9e3779b97f4a7c15

func mix(z uint64) uint64 {
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	return z ^ (z >> 31)
}

// load has the keys and the values, made before the clock starts.
type load struct {
	options
	names  []string
	block  string
	starts []uint16
}

func newLoad(o options) *load {
	l := &load{options: o, names: make([]string, o.keys), starts: make([]uint16, o.keys)}
	prefix := "key:"
	if o.misses {
		prefix = "mis:"
	}
	for i := range l.names {
		l.names[i] = fmt.Sprintf("%s%0*d", prefix, o.keySize-len(prefix), i)
		l.starts[i] = uint16(mix(uint64(i)) & 4095)
	}
	block := make([]byte, 4096+o.valueSize)
	state := uint64(1)
	for i := range block {
		block[i] = 'a' + byte(((mix(state)>>32)*26)>>32)
		state += gamma
	}
	l.block = string(block)
	return l
}

func (l *load) value(number uint32) string {
	start := int(l.starts[number])
	return l.block[start : start+l.valueSize]
}

// operation is one command: the number of its key, and whether it is a SET.
type operation struct {
	key uint32
	set bool
}

// stream is the operations of one caller.
type stream struct {
	state uint64
	load  *load
}

func newStream(l *load, caller int) *stream {
	return &stream{mix(l.seed + mix(uint64(caller)+1)), l}
}

func (s *stream) draw() operation {
	s.state += gamma
	word := mix(s.state)
	return operation{uint32(((word >> 32) * uint64(s.load.keys)) >> 32), word&0xffffffff < s.load.setBelow}
}

// streamCheck is the sum of the first thousand words of caller 0.
func streamCheck(seed uint64) string {
	state, sum := mix(seed+mix(1)), uint64(0)
	for i := 0; i < 1000; i++ {
		state += gamma
		sum += mix(state)
	}
	return "0x" + strconv.FormatUint(sum, 16)
}

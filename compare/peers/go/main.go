// The comparison's program around a client for Go: compare/PROTOCOL.md.
//
// A caller is a goroutine. What goredis.go and redigo.go do is all that differs.
package main

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// client is what a library offers. It is shared by all callers.
type client interface {
	get(key string) reply
	set(key, value string) reply
	// batch sends all operations and then awaits all replies.
	batch(l *load, operations []operation, replies []reply)
	// connections is how many there are.
	connections() int
}

// clientVersion is set when the program is linked.
var clientVersion = "unknown"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", clientName, err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	o, err := parseOptions(arguments)
	if err != nil {
		return err
	}
	l, t := newLoad(o), &tally{}
	callers, size := o.callers()
	c, err := connect(o, callers)
	if err != nil {
		return err
	}
	var group sync.WaitGroup
	for caller := 0; caller < callers; caller++ {
		group.Add(1)
		go func(s *stream) {
			defer group.Done()
			if o.style == "batch" {
				batcher(l, t, c, s, size)
			} else {
				waiter(l, t, c, s)
			}
		}(newStream(l, caller))
	}
	t.window(o)
	group.Wait()
	out, err := t.report(o, c.connections(), notes)
	if err == nil {
		fmt.Println(string(out))
	}
	return err
}

// waiter reads the clock once for each command, as our program does: the next one begins where the last one ended.
func waiter(l *load, t *tally, c client, s *stream) {
	begun := time.Now()
	for atomic.LoadInt32(&t.phase) != over {
		op := s.draw()
		t.sent(op)
		var r reply
		if op.set {
			r = c.set(l.names[op.key], l.value(op.key))
		} else {
			r = c.get(l.names[op.key])
		}
		now := time.Now()
		t.count(l, op, r, now.Sub(begun))
		begun = now
	}
}

func batcher(l *load, t *tally, c client, s *stream, size int) {
	operations, replies := make([]operation, size), make([]reply, size)
	for atomic.LoadInt32(&t.phase) != over {
		for i := range operations {
			operations[i] = s.draw()
			t.sent(operations[i])
		}
		begun := time.Now()
		c.batch(l, operations, replies)
		took := time.Since(begun)
		for i, op := range operations {
			t.count(l, op, replies[i], took)
		}
	}
}

package natsapi_test

import (
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// onEitherNATS runs a story on the embedded server and on one of the operator's own.
func onEitherNATS(t *testing.T, story func(*testing.T, *world)) {
	t.Run("embedded", func(t *testing.T) { story(t, newWorld(t, 0)) })
	t.Run("external", func(t *testing.T) { story(t, newExternal(t).world) })
}

// One agent that floods inventories is cut off before it costs the others theirs, and comes back once it
// gets a credential again.
func TestAFloodOfInventoriesIsCutOff(t *testing.T) {
	onEitherNATS(t, func(t *testing.T, w *world) {
		d := newDomain()
		rogue, other := w.agent("agt_a"), w.agent("agt_b")
		d.suspend = func(string) error { return w.console.Revoke(t.Context(), rogue.public) }
		_, stop := w.serve(d)
		defer stop()
		victim := w.connect(other)
		var flood sync.WaitGroup
		for range 2 {
			nc := w.connect(rogue)
			flood.Go(func() {
				for end := time.Now().Add(patience); time.Now().Before(end) && nc.IsConnected(); {
					for range 100 {
						_ = nc.Publish("inventory.agt_a", []byte("flood")) // refused once it is cut off
					}
					_ = nc.FlushTimeout(patience)
				}
			})
		}
		if got := await(t, "the suspension", d.kept); got != "agt_a" {
			t.Fatalf("%s was suspended", got)
		}
		begun := time.Now()
		publish(t, victim, "inventory.agt_b", "mine")
		for got := ""; got != "agt_b mine"; {
			got = await(t, "the inventory of the other agent", d.received)
		}
		flood.Wait()
		if took := time.Since(begun); took > patience/2 {
			t.Errorf("the flood went on for %v", took)
		}
		if victim.Reconnects > 0 {
			t.Error("the other agent was cut off too")
		}
		if nc, err := nats.Connect(w.address, rogue.options()...); err == nil {
			nc.Close()
			t.Error("the old credential is taken again")
		}
		eventually(t, "a fresh credential to be taken", func() bool {
			rogue.renew(w) // one of the second of the cut is refused
			nc, err := nats.Connect(w.address, rogue.options()...)
			if err != nil {
				return false
			}
			nc.Close()
			return true
		})
	})
}

// Of the connections of one agent that are too many the newest stay; far too many of them are no broken network.
func TestConnectionsOfAnAgentAreBounded(t *testing.T) {
	onEitherNATS(t, func(t *testing.T, w *world) {
		d := newDomain()
		_, stop := w.serve(d)
		defer stop()
		a := w.agent("agt_a")
		bystander := w.connect(w.agent("agt_b"))
		var all []*nats.Conn
		open := func() (n int) {
			for _, nc := range all {
				if nc.IsConnected() {
					n++
				}
			}
			return n
		}
		for range 20 {
			all = append(all, w.connect(a, nats.NoReconnect()))
		}
		eventually(t, "eight connections to be left", func() bool { return open() == 8 })
		for i, nc := range all[12:] {
			if !nc.IsConnected() {
				t.Errorf("connection %d was closed, it is one of the newest", 12+i)
			}
		}
		select {
		case id := <-d.kept:
			t.Errorf("%s was suspended for what a broken network may leave behind", id)
		default:
		}
		eventually(t, "the suspension", func() bool {
			var group sync.WaitGroup
			for range 100 { // at once: what comes slowly is thinned out
				group.Go(func() {
					if nc, err := nats.Connect(w.address, a.options(nats.NoReconnect())...); err == nil {
						t.Cleanup(nc.Close)
					}
				})
			}
			group.Wait()
			select {
			case id := <-d.kept:
				if id != "agt_a" {
					t.Errorf("%s was suspended", id)
				}
				return true
			case <-time.After(2 * time.Second):
				return false
			}
		})
		if !bystander.IsConnected() || bystander.Reconnects > 0 {
			t.Error("another agent was cut off too")
		}
	})
}

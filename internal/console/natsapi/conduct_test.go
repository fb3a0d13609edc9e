package natsapi_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"prxm.uz/proxima/internal/console/inventory"
	"prxm.uz/proxima/internal/wire"
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

// A large inventory is taken beside those of others, once, however long it takes; of what one agent sends
// meanwhile the newest alone waits, and one agent after the other has its turn.
func TestALargeInventoryHoldsUpNobodyElse(t *testing.T) {
	w := newWorld(t, 0)
	d := newDomain()
	d.answer = func(data string) error {
		if strings.HasPrefix(data, "large") {
			return inventory.ErrLarge
		}
		return nil
	}
	begun, release := make(chan string, 10), make(chan struct{})
	d.large = func(ctx context.Context, what string) error {
		begun <- what
		select {
		case <-release:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	_, stop := w.serve(d)
	defer stop()
	a, b, c := w.connect(w.agent("agt_a")), w.connect(w.agent("agt_b")), w.connect(w.agent("agt_c"))
	publish(t, a, "inventory.agt_a", "large 1")
	if got := await(t, "the large inventory", begun); got != "agt_a large 1" {
		t.Fatal(got)
	}
	small := func(text string) {
		t.Helper()
		publish(t, c, "inventory.agt_c", text)
		for got := ""; got != "agt_c "+text; {
			got = await(t, "the inventory of another agent", d.received)
		}
	}
	small("first")
	for _, text := range []string{"large 2", "large 3"} {
		publish(t, a, "inventory.agt_a", text)
		small("behind " + text) // so that console has it
		if text == "large 2" {
			publish(t, b, "inventory.agt_b", "large 1")
			small("behind the other")
		}
	}
	for _, want := range []string{"agt_a large 3", "agt_b large 1"} {
		select {
		case got := <-begun:
			t.Fatalf("%s was begun beside another", got)
		default:
		}
		release <- struct{}{}
		if got := await(t, want, begun); got != want {
			t.Fatalf("%s was next, want %s", got, want)
		}
	}
	release <- struct{}{}
	consumer, err := w.console.JetStream.Consumer(t.Context(), wire.StreamInventory, "console")
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "all to be acknowledged", func() bool {
		info, err := consumer.Info(t.Context())
		return err == nil && info.NumAckPending == 0 && info.NumPending == 0
	})
}

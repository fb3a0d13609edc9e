package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"prxm.uz/proxima/api/console"
	"prxm.uz/proxima/test/harness"
)

// followEvery is the pause between two looks at the gates while nothing is expected of them.
const followEvery = 2 * time.Second

// errWaiting says that a gate has not passed yet; the text names it.
var errWaiting = errors.New("not passed yet")

// gates prints how the gates of an attempt change.
type gates struct {
	out     io.Writer
	attempt string
	states  map[int]console.GateState // as printed last
}

// look prints what has changed, and returns errWaiting until all gates have passed.
func (g *gates) look(ctx context.Context, c *harness.Console) error {
	status, err := c.Status(ctx, g.attempt)
	if err != nil {
		return err
	}
	var waiting error
	for _, gate := range status.Inventory.Gates {
		if g.states[gate.Number] != gate.State {
			g.states[gate.Number] = gate.State
			fmt.Fprintf(g.out, "   gate %d %-7s  %s: %s\n", gate.Number, gate.State, gate.Title, gate.Sentence)
		}
		if gate.State != console.GateStatePassed && waiting == nil {
			waiting = fmt.Errorf("%w: gate %d, %s, is %s: %s%s", errWaiting, gate.Number, gate.Title, gate.State, gate.Sentence, cure(gate))
		}
	}
	if waiting == nil && !status.Inventory.Done {
		waiting = fmt.Errorf("%w: the gates have, but the track is not done", errWaiting)
	}
	return waiting
}

// cure is what the console says to do.
func cure(gate console.Gate) string {
	if gate.Action == nil {
		return ""
	}
	return " " + gate.Action.Text
}

// pass returns when all gates have passed. It fails when the agent ends before.
func (g *gates) pass(ctx context.Context, c *harness.Console, agent *harness.Agent) error {
	return agent.Process().Await(ctx, "the gates to pass", func(ctx context.Context) error { return g.look(ctx, c) })
}

// follow prints changes until ctx ends. A console that does not answer just now is looked at again.
func (g *gates) follow(ctx context.Context, c *harness.Console) {
	ticker := time.NewTicker(followEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := g.look(ctx, c); err != nil && !errors.Is(err, errWaiting) && ctx.Err() == nil {
			fmt.Fprintf(g.out, "   gates: %v\n", err)
		}
	}
}

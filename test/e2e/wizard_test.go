// Package e2e drives console, agents, API servers, databases and browsers as people do: the real programs,
// from the outside.
package e2e

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"prxm.uz/proxima/test/harness"
)

// engine is a way to run console.
type engine struct {
	name  string
	start func(t *testing.T, h *harness.T) *harness.Console
}

func engines() []engine {
	return []engine{
		{"embedded", func(_ *testing.T, h *harness.T) *harness.Console {
			return h.Console(harness.ConsoleOptions{Env: settings()})
		}},
		{"postgres and external NATS", startExternal},
	}
}

// settings are those of every console here: an interval that a test can wait for.
func settings() map[string]string {
	return map[string]string{"PROXIMA_K8S_SYNC_INTERVAL": "5s"}
}

// startExternal starts console beside PostgreSQL and a NATS server that nats-setup configured.
func startExternal(t *testing.T, h *harness.T) *harness.Console {
	t.Helper()
	_, env := h.OwnNATS()
	maps.Copy(env, settings())
	env["PROXIMA_DATABASE_URL"] = h.Database(h.Postgres())
	return h.Console(harness.ConsoleOptions{Env: env})
}

// TestWizard walks from the first sign-in to four passed gates and on to the cluster's pages. Midway
// console is restarted: what was measured stands, and the open page goes on by itself.
func TestWizard(t *testing.T) {
	for _, e := range engines() {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			h := harness.New(t)
			plane := h.ControlPlane()
			populate(t, plane)
			c := e.start(t, h)
			b := open(t, c.URL)

			b.signIn(c)
			b.awaitPath("/start")
			b.screenshot("start")
			b.fill("#client", "Halden Energy")
			b.press(kb.Enter)
			b.awaitPath("/clusters/add")
			b.fill("#name", "Ost Werk's $(cluster) 1")
			b.await("the slug", `document.querySelector("#slug").textContent.trim() === "ost-werk-s-cluster-1"`)
			b.screenshot("add")
			b.click("#add button[type=submit]")
			b.awaitElement("#token")
			b.screenshot("install")
			command := b.text("#command")
			if !strings.Contains(command, b.text("#token")) {
				t.Error("the command does not hold the token")
			}
			b.click("#to-status")
			b.awaitElement("#inventory-1.passed")
			b.awaitElement("#inventory-2.waiting")
			b.screenshot("status-waiting")

			b.awaitLive()
			b.expectErrors("/events") // the stream ends with the console that serves it
			b.expectErrors("ERR_CONNECTION_REFUSED")
			if err := c.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := plane.Shell(t.Context(), command); err != nil {
				t.Fatal(err)
			}
			startInstalled(t, h, plane)
			for n := 2; n <= 4; n++ {
				b.awaitElement(fmt.Sprintf("#inventory-%d.passed", n))
			}
			b.awaitElement("#done")
			b.screenshot("status-passed")
			b.reload()
			b.awaitElement("#inventory-4.passed")

			b.click("#open-cluster")
			b.awaitElement("main h1")
			visitCluster(t, b)
			b.goTo("/clusters")
			if text := b.text("main"); !strings.Contains(text, "Ost Werk's $(cluster) 1") {
				t.Errorf("the Clusters page reads: %s", text)
			}
			b.screenshot("clusters")
			b.goTo("/hosts")
			if text := b.text("main"); strings.Contains(text, "proxima-cluster-agent") || strings.Contains(text, "Ost Werk") {
				t.Errorf("the Hosts page shows a cluster agent: %s", text)
			}
			b.screenshot("hosts")
		})
	}
}

// visitCluster looks at every section of a cluster.
func visitCluster(t *testing.T, b *browser) {
	t.Helper()
	b.screenshot("cluster")
	path := strings.TrimPrefix(b.location(), b.base)
	for section, want := range map[string]string{
		"nodes": "fake-0001", "namespaces": "shop", "workloads": "web", "pods": "web-", "services": "kubernetes", "events": "Scheduled",
	} {
		b.goTo(path + "/" + section)
		if text := b.text("main"); !strings.Contains(text, want) {
			t.Errorf("section %s does not show %q: %s", section, want, text)
		}
		b.screenshot("cluster-" + section)
	}
	b.goTo(path + "/pods?q=no-such-pod")
	if text := b.text("main"); strings.Contains(text, "web-") {
		t.Error("a search for a pod that is not there finds some")
	}
}

// TestWizardByKeyboard does the same with Tab, Enter and letters alone.
func TestWizardByKeyboard(t *testing.T) {
	t.Parallel()
	h := harness.New(t)
	plane := h.ControlPlane()
	populate(t, plane)
	c := h.Console(harness.ConsoleOptions{Env: settings()})
	b := open(t, c.URL)

	b.goTo("/")
	b.awaitPath("/signin")
	b.tabTo("#email")
	b.press(c.Email + kb.Tab)
	b.tabTo("#password")
	b.press(c.Password + kb.Enter)
	b.awaitPath("/start")
	b.tabTo("#client")
	b.press("Halden Energy")
	b.tabTo("#environment")
	b.press("prod" + kb.Enter)
	b.awaitPath("/clusters/add")
	b.tabTo("#name")
	b.press("Keyboard 1")
	b.tabTo("#add button[type=submit]")
	b.press(kb.Enter)
	b.awaitElement("#token")
	command := b.text("#command")
	b.tabTo("#to-status")
	b.press(kb.Enter)
	b.awaitElement("#inventory-2.waiting")
	if _, err := plane.Shell(t.Context(), command); err != nil {
		t.Fatal(err)
	}
	startInstalled(t, h, plane)
	b.awaitElement("#done")
	b.tabTo("#open-cluster")
	b.press(kb.Enter)
	b.await("the cluster's page", `location.pathname.startsWith("/clusters/") && !location.pathname.includes("/add")`)
	b.tabTo(`a[href$="/pods"]`)
	b.press(kb.Enter)
	b.await("the pods", `location.pathname.endsWith("/pods") && document.body.innerText.includes("web-")`)
}

// awaitLive waits for the stream of gates to be open.
func (b *browser) awaitLive() {
	b.t.Helper()
	b.await("the page to be live", `document.querySelector("#live-dot").textContent.startsWith("Live")`)
}

// TestStreamOpensLate: a page whose stream could not be opened at first says that it is not live, goes on
// trying, and is live once it can.
func TestStreamOpensLate(t *testing.T) {
	t.Parallel()
	h := harness.New(t)
	c := h.Console(harness.ConsoleOptions{Env: settings()})
	_, recorded := startAttempt(t, c, "Halden Energy", "Ost")
	b := open(t, c.URL)
	b.expectErrors("/events")
	b.signIn(c)
	b.block("*://*:*/*/events*")
	b.goTo("/clusters/add/" + recorded.Onboarding.ID)
	b.await("the page to say that it is not live", `document.querySelector("#live-dot").textContent.startsWith("Not live")`)
	b.block()
	b.awaitLive()
}

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"prxm.uz/proxima/test/harness"
)

// pageLimit bounds each wait for something on a page.
const pageLimit = 90 * time.Second

// browser is one tab. Each verb ends the test where it fails; the test fails too where the page logged
// an error, a violated content policy included.
type browser struct {
	t    *testing.T
	ctx  context.Context
	base string

	mu       sync.Mutex
	tolerate []string
	errors   []string
}

func open(t *testing.T, base string) *browser {
	t.Helper()
	b := &browser{t: t, ctx: harness.New(t).Browser(), base: base}
	note := func(text string) {
		b.mu.Lock()
		defer b.mu.Unlock()
		if !slices.ContainsFunc(b.tolerate, func(part string) bool { return strings.Contains(text, part) }) {
			b.errors = append(b.errors, text)
		}
	}
	err := chromedp.Listen(b.ctx, func(event any) {
		switch e := event.(type) {
		case *log.EventEntryAdded:
			if e.Entry.Level == log.EntryLevelError {
				note(e.Entry.Text + " " + e.Entry.URL)
			}
		case *runtime.EventExceptionThrown:
			note(e.ExceptionDetails.Text)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(b.ctx, log.Enable, cdp.Empty{}); err != nil {
		t.Fatal(err)
	}
	b.size(1280, 900)
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, text := range b.errors {
			t.Errorf("the browser logged: %s", text)
		}
	})
	return b
}

// expectErrors makes the test pass over logged errors that hold the text, such as those of a console that
// is down on purpose.
func (b *browser) expectErrors(part string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tolerate = append(b.tolerate, part)
}

func (b *browser) do(what string, steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, pageLimit)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.fail(what, err)
	}
}

func (b *browser) fail(what string, err error) {
	b.t.Helper()
	where, _ := chromedp.Run(b.ctx, chromedp.Location())
	text, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string]("document.body.innerText"))
	b.t.Fatalf("%s: %v\nat %s the page reads:\n%s", what, err, where, text)
}

func (b *browser) size(width, height int64) {
	b.t.Helper()
	b.do("set the size", chromedp.EmulateViewport(width, height))
}

func (b *browser) goTo(path string) {
	b.t.Helper()
	b.do("go to "+path, chromedp.Navigate(b.base+path))
}

// block makes requests to addresses like these fail, and all others work again.
func (b *browser) block(patterns ...string) {
	b.t.Helper()
	p := network.SetBlockedURLsParams{URLPatterns: []*network.BlockPattern{}}
	for _, pattern := range patterns {
		p.URLPatterns = append(p.URLPatterns, &network.BlockPattern{URLPattern: pattern, Block: true})
	}
	if _, err := chromedp.Call(b.ctx, network.Enable, network.EnableParams{}); err != nil {
		b.fail("watch the network", err)
	}
	if _, err := chromedp.Call(b.ctx, network.SetBlockedURLs, p); err != nil {
		b.fail("block requests", err)
	}
}

func (b *browser) reload() {
	b.t.Helper()
	b.do("reload", chromedp.Reload())
}

func (b *browser) click(selector string) {
	b.t.Helper()
	b.do("click "+selector, chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
}

func (b *browser) fill(selector, text string) {
	b.t.Helper()
	b.do("fill "+selector, chromedp.WaitVisible(chromedp.CSS(selector)), chromedp.SendKeys(chromedp.CSS(selector), text))
}

// text is what an element says.
func (b *browser) text(selector string) string {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, pageLimit)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.TextContent(chromedp.CSS(selector)))
	if err != nil {
		b.fail("read "+selector, err)
	}
	return text
}

// await waits for a JavaScript expression to be true, over reloads and navigations.
func (b *browser) await(what, expression string) {
	b.t.Helper()
	deadline := time.Now().Add(pageLimit)
	for {
		ok, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool]("!!("+expression+")"))
		if err == nil && ok {
			return
		}
		if time.Now().After(deadline) {
			b.fail("await "+what, fmt.Errorf("not within %s (%w)", pageLimit, err))
		}
		b.do("wait", chromedp.Sleep(100*time.Millisecond))
	}
}

func (b *browser) awaitElement(selector string) {
	b.t.Helper()
	b.await(selector, fmt.Sprintf("document.querySelector(%q)", selector))
}

// awaitPath waits for the browser to be at a path.
func (b *browser) awaitPath(path string) {
	b.t.Helper()
	b.await("the path "+path, fmt.Sprintf("location.pathname === %q && document.readyState === 'complete'", path))
}

// press sends keys as a keyboard does.
func (b *browser) press(keys string) {
	b.t.Helper()
	b.do("press keys", chromedp.KeyEvent(keys))
}

// tabTo presses Tab until the element has the focus, as somebody without a mouse does.
func (b *browser) tabTo(selector string) {
	b.t.Helper()
	focused := fmt.Sprintf("document.activeElement.matches(%q)", selector)
	for range 80 {
		if ok, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](focused)); err == nil && ok {
			return
		}
		b.press(kb.Tab)
	}
	b.fail("reach "+selector+" by Tab", fmt.Errorf("not within 80 presses"))
}

// screenshot keeps a picture where PROXIMA_SCREENSHOTS names a directory, for people to look at.
func (b *browser) screenshot(name string) {
	b.t.Helper()
	dir := os.Getenv("PROXIMA_SCREENSHOTS")
	if dir == "" {
		return
	}
	picture, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		b.fail("take a screenshot", err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// signIn signs in through the form.
func (b *browser) signIn(c *harness.Console) {
	b.t.Helper()
	b.goTo("/")
	b.awaitPath("/signin")
	b.screenshot("signin")
	b.fill("#email", c.Email)
	b.fill("#password", c.Password)
	b.press(kb.Enter)
	b.await("to be signed in", "location.pathname !== '/signin'")
}

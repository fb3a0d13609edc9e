package web

import (
	"testing"

	"github.com/chromedp/chromedp"

	"prxm.uz/proxima/test/harness"
)

// On the narrowest screen that the pages are made for nothing of a cluster's overview lies outside of it, in either
// theme.
func TestTheOverviewFitsANarrowScreen(t *testing.T) {
	s := full(t)
	ctx := harness.New(t).Browser()
	for _, theme := range []string{"light", "dark"} {
		err := chromedp.Do(ctx, chromedp.EmulateViewport(360, 900), chromedp.Navigate(s.server.URL+"/clusters/ck_ostra_web"), chromedp.WaitVisible(chromedp.CSS("#kinds")))
		if err != nil {
			t.Fatal(err)
		}
		wide, err := chromedp.Run(ctx, chromedp.Evaluate[[]string](`document.documentElement.dataset.theme = "`+theme+`"; [document.documentElement, ...document.querySelectorAll(".cols .table-wrap")].filter(e => e.scrollWidth > e.clientWidth).map(e => e.tagName + " " + e.scrollWidth + " > " + e.clientWidth)`))
		if err != nil {
			t.Fatal(err)
		}
		if len(wide) != 0 {
			t.Errorf("%s: %q", theme, wide)
		}
		said, err := chromedp.Run(ctx, chromedp.Evaluate[string](`document.querySelector("#kinds tbody").innerText`))
		if err != nil {
			t.Fatal(err)
		}
		if want := "nodes\nread 55 s ago"; len(said) < len(want) || said[:len(want)] != want {
			t.Errorf("%s: the table says %q", theme, said)
		}
	}
}

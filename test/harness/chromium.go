package harness

import (
	"os"
	"os/exec"

	"github.com/chromedp/chromedp"
)

// Chromium returns the options with which chromedp starts a headless Chromium. Each
// browser needs an empty directory of its own for its profile. They add to
// chromedp's defaults what a machine without a way to the internet wants, where
// background requests only fail, many at a time; and no sandbox for root, who
// cannot have one.
func Chromium(profile string) ([]chromedp.ExecAllocatorOption, error) {
	var path string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		found, err := exec.LookPath(name)
		if err == nil {
			path = found
			break
		}
	}
	if path == "" {
		return nil, errNotInstalled("Chromium", "chromium")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		chromedp.UserDataDir(profile),
		chromedp.Flag("disable-gpu", true),
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true),
		// Fonts and scroll bars of the machine would move what screenshots show.
		chromedp.Flag("hide-scrollbars", true),
		chromedp.Flag("lang", "en-US"),
	)
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	return options, nil
}

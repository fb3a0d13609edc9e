package web

import (
	"net/http"

	"prxm.uz/proxima/internal/config"
	"prxm.uz/proxima/internal/console/health"
)

// settingsData is the page of what Console stands on.
type settingsData struct {
	base
	Report health.Report
	Groups []settingGroup
}

// settingGroup is a table of settings.
type settingGroup struct {
	Name string
	Rows []config.Setting
}

func (s *server) settings(v *visit) error {
	report, err := s.Health.Report(v.ctx(), v.who)
	if err != nil {
		return err
	}
	page := settingsData{base: s.base(v, "Settings", "settings"), Report: report, Groups: settingGroups(report.Settings)}
	page.Now = report.At // it may have been waited for
	return v.render(http.StatusOK, settingsView(page))
}

// settingGroups keeps the order in which groups and settings come.
func settingGroups(settings []config.Setting) []settingGroup {
	var out []settingGroup
	for _, s := range settings {
		if len(out) == 0 || out[len(out)-1].Name != s.Group {
			out = append(out, settingGroup{Name: s.Group})
		}
		last := &out[len(out)-1]
		last.Rows = append(last.Rows, s)
	}
	return out
}

// settingName is the variable that sets it, or the flag.
func settingName(s config.Setting) string {
	if s.Variable != "" {
		return s.Variable
	}
	return "--" + s.Flag
}

// sourceWords says where a value came from.
func sourceWords(s config.Source) string {
	switch s {
	case config.FromDefault:
		return "Default"
	case config.FromEnvironment:
		return "Environment"
	case config.FromFlag:
		return "Flag"
	}
	return string(s)
}

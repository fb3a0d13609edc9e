package httpapi

import (
	"context"

	api "prxm.uz/proxima/api/console"
	"prxm.uz/proxima/internal/config"
	"prxm.uz/proxima/internal/console/health"
	"prxm.uz/proxima/internal/console/health/part"
)

// GetSettings implements the operation getSettings.
func (s *server) GetSettings(ctx context.Context, _ api.GetSettingsRequestObject) (api.GetSettingsResponseObject, error) {
	r, err := s.Health.Report(ctx, who(ctx))
	if err != nil {
		return nil, err
	}
	return api.GetSettings200JSONResponse{
		MeasuredAt: r.At.UTC(), Parts: each(r.Parts, judgedPart), Settings: each(r.Settings, setting),
		Versions: each(r.Versions, func(v health.Version) api.PartVersion {
			return api.PartVersion{Name: v.Name, Version: text(v.Value)}
		}),
	}, nil
}

func judgedPart(p part.Part) api.Part {
	return api.Part{
		ID: p.ID, Title: p.Title, State: api.GateState(p.State), Sentence: p.Sentence, Next: text(p.Next), MeasuredAt: p.At.UTC(),
		Evidence: each(p.Facts, func(f part.Fact) api.Evidence { return api.Evidence{Label: f.Label, Value: f.Value} }),
	}
}

func setting(s config.Setting) api.Setting {
	return api.Setting{
		Variable: text(s.Variable), Flag: s.Flag, Group: s.Group, Value: s.Value, Source: api.SettingSource(s.Source), Secret: s.Secret,
	}
}

package config

import (
	"fmt"
	"reflect"
	"strconv"
	"time"

	"github.com/alecthomas/kong"
)

// mappers read durations and numbers with errors that name a form which works: the setting's own default,
// where it has one.
func mappers() []kong.Option {
	return []kong.Option{
		kong.TypeMapper(reflect.TypeFor[time.Duration](), kong.MapperFunc(func(ctx *kong.DecodeContext, target reflect.Value) error {
			return read(ctx, func(text string) error {
				d, err := time.ParseDuration(text)
				if err != nil {
					return fmt.Errorf("%q is no duration: write numbers with units of h, m and s, such as %s (a day is 24h)", text, sample(ctx, "5m"))
				}
				target.SetInt(int64(d))
				return nil
			})
		})),
		kong.KindMapper(reflect.Int, kong.MapperFunc(func(ctx *kong.DecodeContext, target reflect.Value) error {
			return read(ctx, func(text string) error {
				n, err := strconv.Atoi(text)
				if err != nil {
					return fmt.Errorf("%q is no whole number: write digits alone, such as %s", text, sample(ctx, "10"))
				}
				target.SetInt(int64(n))
				return nil
			})
		})),
	}
}

func read(ctx *kong.DecodeContext, decode func(text string) error) error {
	var text string
	if err := ctx.Scan.PopValueInto("value", &text); err != nil {
		return fmt.Errorf("it has no value; write one, such as %s", sample(ctx, "…"))
	}
	return decode(text)
}

func sample(ctx *kong.DecodeContext, without string) string {
	if ctx.Value != nil && ctx.Value.Default != "" {
		return ctx.Value.Default
	}
	return without
}

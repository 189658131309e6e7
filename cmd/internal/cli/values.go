package cli

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// values reads texts, numbers and durations in place of kong, which makes all bytes
// that are not UTF-8 one character, so that two keys become one, takes 010 for 8,
// and says what it expected in the words of Go.
var values = kong.OptionFunc(func(k *kong.Kong) error {
	text := mapper(func(text string) (string, error) { return text, nil })
	lists := kong.NewRegistry().RegisterDefaults().RegisterKind(reflect.String, text).ForType(reflect.TypeFor[[]string]())
	for _, o := range []kong.Option{
		kong.KindMapper(reflect.String, text),
		kong.TypeMapper(reflect.TypeFor[[]string](), kong.MapperFunc(func(ctx *kong.DecodeContext, target reflect.Value) error {
			if ctx.Value.Flag != nil && ctx.Scan.Peek().IsEOL() {
				return missing(ctx.Value)
			}
			return lists.Decode(ctx, target)
		})),
		kong.KindMapper(reflect.Int, mapper(whole)),
		kong.KindMapper(reflect.Int64, mapper(whole)),
		kong.KindMapper(reflect.Float64, mapper(fraction)),
		kong.TypeMapper(reflect.TypeFor[time.Duration](), mapper(duration)),
	} {
		if err := o.Apply(k); err != nil {
			return err
		}
	}
	return nil
})

// mapper reads one value from a text.
func mapper[T any](read func(string) (T, error)) kong.Mapper {
	return kong.MapperFunc(func(ctx *kong.DecodeContext, target reflect.Value) error {
		token := ctx.Scan.Pop()
		switch {
		case token.IsEOL():
			return missing(ctx.Value)
		case !token.IsValue() && (target.Kind() == reflect.String || !negative(token)):
			return fmt.Errorf("%w, with the = where the value begins with -", missing(ctx.Value))
		}
		v, err := read(fmt.Sprint(token.Value))
		if err != nil {
			return err
		}
		target.Set(reflect.ValueOf(v).Convert(target.Type()))
		return nil
	})
}

// negative says that a token is a number below 0, which no flag is.
func negative(token kong.Token) bool {
	text := token.String()
	return len(text) > 1 && text[0] == '-' && '0' <= text[1] && text[1] <= '9'
}

// missing is the error of a flag without a value.
func missing(v *kong.Value) error {
	return fmt.Errorf("it needs a value; write --%s=%s", v.Name, v.Flag.PlaceHolder)
}

// whole reads a whole number in decimal, as rules have it: with single underscores
// between digits at most.
func whole(text string) (int64, error) {
	n, err := strconv.ParseInt(strings.ReplaceAll(text, "_", ""), 10, 64)
	unsigned := strings.TrimPrefix(text, "-")
	if err != nil || strings.Trim(unsigned, "0123456789_") != "" || strings.Contains("_"+unsigned+"_", "__") {
		return 0, fmt.Errorf("%s is no whole number below 2^63; write digits only", quoted(text))
	}
	return n, nil
}

func fraction(text string) (float64, error) {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, fmt.Errorf("%s is no number; write one like 2.5", quoted(text))
	}
	return x, nil
}

func duration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%s cannot be read as a time; write a number and its unit, ns, us, ms, s, m or h, without a blank, such as 500ms or 1h30m, up to 292 years", quoted(text))
	}
	return d, nil
}

// quoted shows a text, or the beginning of a long one.
func quoted(text string) string { return fmt.Sprintf("%.40q", text) }

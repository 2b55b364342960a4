package postgres

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// The server reads arrays as what they were made of.
func TestArraysAreTheServers(t *testing.T) {
	t.Parallel()
	target, err := parse(freshURL(t), Config{}.withDefaults())
	require.NoError(t, err)
	c, err := pgx.ConnectConfig(ctx, target.pool.ConnConfig)
	require.NoError(t, err)
	defer c.Close(ctx)
	self := func(v *string) string { return *v }
	words := []string{"", "a,b", `"\`, strings.Repeat("é", 3000), "NULL"}
	numbers := []int64{0, -1, math.MaxInt64, math.MinInt64}
	early, late := time.Date(-4700, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(200_000, 12, 31, 23, 59, 59, 999_999_999, time.UTC)
	moments := []time.Time{time.Unix(0, 0), time.Unix(-1, 999_999_999), time.Unix(1_700_000_000, 123_456_789), early, late,
		early.Add(-time.Nanosecond), late.Add(time.Nanosecond), time.Unix(1<<55, 0), {}}
	for _, a := range []struct {
		of, want string
		got      []byte
	}{
		{"text", `{"","a,b","\"\\",` + words[3] + `,"NULL"}`, texts(words, self)},
		{"text", `{a,NULL,NULL}`, derivedTexts([]string{"a", "b\x00", "\xff"}, self)},
		{"text", `{}`, texts([]string{}, self)},
		{"bytea", `{"\\x00ff","\\x"}`, bytesOf([]string{"\x00\xff", ""}, func(dst []byte, v *string) []byte { return append(dst, *v...) })},
		{"bigint", `{0,-1,9223372036854775807,-9223372036854775808}`, integers(numbers, func(v *int64) int64 { return *v })},
		{"int", `{0,-1,-1,0}`, smallIntegers(numbers, func(v *int64) int32 { return int32(*v) })},
		{"boolean", `{f,t,t,t}`, booleans(numbers, func(v *int64) bool { return *v != 0 })},
		{"timestamptz", `{"1970-01-01 00:00:00+00","1969-12-31 23:59:59.999999+00","2023-11-14 22:13:20.123456+00",` +
			`"4701-01-01 00:00:00+00 BC","200000-12-31 23:59:59.999999+00",NULL,NULL,NULL,"0001-01-01 00:00:00+00"}`,
			derivedTimes(moments, func(v *time.Time) time.Time { return *v })},
	} {
		r := c.PgConn().ExecParams(ctx, `SELECT $1::`+a.of+`[]::text`, [][]byte{a.got}, nil, []int16{1}, nil).Read()
		require.NoError(t, r.Err, a.want)
		require.Equal(t, a.want, string(r.Rows[0][0]))
	}
}

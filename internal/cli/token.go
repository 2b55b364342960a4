package cli

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
)

// maxSecret is the most bytes that a file of tokens may have.
const maxSecret = 1 << 20

// ReadSecret reads a file of at most 1 MiB that nobody but its owner and its
// group may use. Errors do not repeat what it has.
func ReadSecret(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat() // of what was opened, whatever the path leads to now
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", path)
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o007 != 0:
		return nil, fmt.Errorf("everybody on this machine can use %s (its mode is %04o); take that away with chmod o= %s", path, info.Mode().Perm(), path)
	case info.Size() > maxSecret:
		return nil, fmt.Errorf("%s has more than %d bytes", path, maxSecret)
	}
	return io.ReadAll(io.LimitReader(f, maxSecret))
}

// readToken reads a file that has a token on a line of its own, or the lines of
// a server's own file, "read TOKEN" and "write TOKEN": of these the first that
// may write, or else the first. Empty lines and those that begin with # say
// nothing.
func readToken(path string) (string, error) {
	data, err := ReadSecret(path)
	if err != nil {
		return "", Usagef("the file of the token cannot be used: %w", err)
	}
	var plain, read, write []string
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0 || fields[0][0] == '#':
		case len(fields) == 1:
			plain = append(plain, fields[0])
		case len(fields) == 2 && fields[0] == "write":
			write = append(write, fields[1])
		case len(fields) == 2 && fields[0] == "read":
			read = append(read, fields[1])
		default:
			return "", Usagef("the file of the token cannot be used: %s has a line that is neither a token nor read or write and a token", path)
		}
	}
	if len(plain) > 1 {
		return "", Usagef("the file of the token cannot be used: %s has several tokens; write `read` or `write` before each, or leave one", path)
	}
	for _, list := range [][]string{plain, write, read} {
		if len(list) > 0 {
			return list[0], checkToken(list[0], path)
		}
	}
	return "", Usagef("the file of the token cannot be used: %s has no token", path)
}

// checkToken refuses what no header can carry.
func checkToken(token, from string) error {
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return Usagef("the token of %s has other than visible ASCII characters", from)
	}
	return nil
}

// A compose project as `docker compose` would take it: compose FILE
//
// Loads it with the compose project's own loader, which checks it against the specification's schema and that what services name
// is there, and prints the result as JSON: short forms written out, variables filled in with no environment but
// that of the arguments NAME=VALUE, paths made absolute. A warning of the loader is an error here.
//
// SPDX-License-Identifier: Apache-2.0
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/sirupsen/logrus"
)

// warnings keeps what the loader complains of without refusing the file.
type warnings struct{ said []error }

func (w *warnings) Levels() []logrus.Level { return logrus.AllLevels[:logrus.WarnLevel+1] }

func (w *warnings) Fire(entry *logrus.Entry) error {
	w.said = append(w.said, errors.New(entry.Message))
	return nil
}

func load(file string, environment []string) ([]byte, error) {
	var complaints warnings
	logrus.AddHook(&complaints)
	options, err := cli.NewProjectOptions([]string{file}, cli.WithEnv(environment), cli.WithInterpolation(true),
		cli.WithNormalization(true), cli.WithConsistency(true), cli.WithResolvedPaths(true))
	if err != nil {
		return nil, err
	}
	project, err := options.LoadProject(context.Background())
	if err = errors.Join(append(complaints.said, err)...); err != nil {
		return nil, err
	}
	return project.MarshalJSON()
}

func run(arguments []string) error {
	if len(arguments) == 0 {
		return errors.New("usage: compose FILE [NAME=VALUE …]")
	}
	text, err := load(arguments[0], arguments[1:])
	if err == nil {
		_, err = fmt.Printf("%s\n", text)
	}
	return err
}

func main() {
	logrus.SetOutput(io.Discard)
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

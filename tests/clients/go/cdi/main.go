// What a container runtime does with CDI devices, by the package that runtimes use.
//
//	cdi DIRECTORY BUNDLE DEVICE…
//
// It adds the devices, as specifications in DIRECTORY describe them, to the container in BUNDLE/config.json.
//
// SPDX-License-Identifier: Apache-2.0
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	spec "github.com/opencontainers/runtime-spec/specs-go"
	"tags.cncf.io/container-device-interface/pkg/cdi"
)

func inject(directory, bundle string, devices []string) error {
	file := filepath.Join(bundle, "config.json")
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	container := &spec.Spec{}
	if err := json.Unmarshal(text, container); err != nil {
		return err
	}
	cache, err := cdi.NewCache(cdi.WithSpecDirs(directory), cdi.WithAutoRefresh(false))
	if err != nil {
		return err
	}
	for name, wrong := range cache.GetErrors() {
		return fmt.Errorf("%s: %w", name, errors.Join(wrong...))
	}
	if unknown, err := cache.InjectDevices(container, devices...); err != nil {
		return fmt.Errorf("%v: %w", unknown, err)
	}
	if text, err = json.Marshal(container); err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644)
}

func main() {
	if len(os.Args) < 4 {
		fmt.Fprintln(os.Stderr, "usage: cdi DIRECTORY BUNDLE DEVICE…")
		os.Exit(64)
	}
	if err := inject(os.Args[1], os.Args[2], os.Args[3:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

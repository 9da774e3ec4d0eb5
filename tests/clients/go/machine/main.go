// Machine says what a static program sees of GPUs on the machine it runs on: device nodes, the driver, PCI devices.
//
// It uses neither cgo nor a library of the system, so nothing that is loaded into a program could reach it.
//
// SPDX-License-Identifier: Apache-2.0
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func text(path string) string {
	b, err := os.ReadFile(path)
	fail(err)
	return strings.TrimSpace(string(b))
}

func main() {
	nodes, err := filepath.Glob("/dev/nvidia[0-9]*")
	fail(err)
	for _, node := range nodes {
		info, err := os.Lstat(node)
		fail(err)
		fmt.Println(node, info.Mode()&os.ModeCharDevice != 0)
	}
	fmt.Println(text("/sys/module/nvidia/version"), strings.HasPrefix(text("/proc/driver/nvidia/version"), "NVRM version: "))
	devices, err := filepath.Glob("/sys/bus/pci/devices/*")
	fail(err)
	for _, device := range devices {
		fmt.Println(filepath.Base(device), text(device+"/vendor"), text(device+"/device"))
	}
}

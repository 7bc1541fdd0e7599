// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.bench.result;

/// What was not measured, and why.
public record Absence(String what, String reason) {}

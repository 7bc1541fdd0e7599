// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.result;

/// What was not measured, and why.
public record Absence(String what, String reason) {}

// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.result;

/// A measurement that was not taken, and the reason.
public record Absence(String what, String reason) {}

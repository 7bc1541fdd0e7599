// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.spi;

/// Consecutive samples of one data file.
///
/// @param file its number, from 0
/// @param first the first sample's number in the data file, from 0
/// @param count how many; 1 or more
public record SampleRun(int file, long first, int count) {}

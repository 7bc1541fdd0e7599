// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.spi;

/// Consecutive samples of one data file.
///
/// @param file the data file's number, from 0
/// @param first the first sample's number in the data file, from 0
/// @param count how many samples, 1 or more
public record SampleRun(int file, long first, int count) {}

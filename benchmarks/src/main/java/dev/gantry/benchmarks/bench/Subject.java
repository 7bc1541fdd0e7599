// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.bench;

import java.nio.file.Path;

/// A safetensors file that the bench loads.
///
/// @param what describes the file in words
/// @param bytes the size of all tensors in bytes
/// @param large whether the file has a few large tensors, of which each thread of a grid reads a
///     large part
/// @param decodable whether DJL's own reader knows all types of the file; other types end the JVM
record Subject(Path file, String what, long bytes, boolean large, boolean decodable) {}

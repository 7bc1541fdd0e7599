// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.bench;

import java.nio.file.Path;

/// A safetensors file that the bench loads.
///
/// @param what describes the file in words
/// @param bytes the size of all tensors
/// @param large whether the file is few large tensors, of which the threads of a grid read a lot
/// @param decodable whether DJL's own reader knows all of its types; others end the JVM
record Subject(Path file, String what, long bytes, boolean large, boolean decodable) {}

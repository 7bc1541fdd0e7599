// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import java.util.List;
import java.util.SequencedMap;

/// What a load into parameters did. Immutable.
///
/// @param loaded by parameter, in the block's order, the tensor that it has now. Two parameters of
///     one tensor (tied weights) share its memory if neither had an array; each that had one has a
///     copy
/// @param missing parameters that got no tensor, which only `optPartial` allows: those that had an
///     array keep it, the others of a block have what their initializers made
/// @param unused tensors that no parameter asked for, in the catalogue's order
public record LoadReport(
    SequencedMap<String, String> loaded, List<String> missing, List<String> unused) {}

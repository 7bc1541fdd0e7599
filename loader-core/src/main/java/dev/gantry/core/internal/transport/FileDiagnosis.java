// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.transport;

import dev.gantry.core.TransferReport;

/// How one file would be loaded.
///
/// @param prediction the transport of its bytes that are not in the page cache, and why not a better
///     one
/// @param directAbsence why reads cannot go past the page cache; empty if they can
/// @param residentBytes how many of its bytes are in the page cache; -1 if the kernel does not say
public record FileDiagnosis(
    TransferReport.FileReport prediction, String directAbsence, long size, long residentBytes) {}

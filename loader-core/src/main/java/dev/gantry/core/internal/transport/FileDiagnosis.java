package dev.gantry.core.internal.transport;

import dev.gantry.core.TransferReport;

/// What would become of one file.
///
/// @param route the path that its cold bytes would take, and why not a better one
/// @param directAbsence why reads cannot go past the page cache; empty where they can
/// @param size in bytes
/// @param residentBytes how much of it lies in the page cache; -1 where the kernel does not say
public record FileDiagnosis(
    TransferReport.FileReport route, String directAbsence, long size, long residentBytes) {}

// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.webdataset;

/// One member of a tar archive.
///
/// @param header the offset of the member's header, in bytes from the start of the archive
/// @param offset the offset of the member's data, in bytes from the start of the archive
/// @param length the length of the member's data in bytes
/// @param isFile whether the member is a regular file, and not a directory, a link or something
///     else
public record TarMember(String name, long header, long offset, long length, boolean isFile) {}

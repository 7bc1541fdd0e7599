// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.mapped;

import dev.gantry.core.internal.natives.Availability;
import dev.gantry.core.internal.store.SourceFile;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// What [KeptFiles] knows of a file of one identity; its lock guards all of it.
final class KeptEntry {
  private static final Logger LOG = LoggerFactory.getLogger(KeptFiles.class);

  final Object identity;
  final long size;

  /// How many bytes batches have read since the file was opened, or given up.
  long readBytes;

  /// How many batches use it now.
  int users;

  long usedNanos;

  /// Whether it is being registered or copied.
  boolean underWay;

  /// Whether the log says that it is remote.
  private boolean toldRemote;

  /// Whether it is given up as soon as the batches that use it are there, and serves no others.
  boolean leaving;

  String refusal = "";
  @Nullable KeptFile kept;

  KeptEntry(SourceFile file) {
    identity = file.identity();
    size = file.size();
  }

  /// Why a remote file is not kept: it can be when a cache has all of it, and it is local then.
  Availability<KeptFile> remote(SourceFile file) {
    String reason = "not kept: " + file.descriptors().absence();
    if (!toldRemote) {
      toldRemote = true;
      LOG.info("{}: {}", file.file(), reason);
    }
    return Availability.absent(reason);
  }
}

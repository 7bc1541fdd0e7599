// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.cache;

import dev.gantry.core.Location;
import java.nio.file.Path;

/// Names the files that a [RemoteCache] fills, so that other programs find them. Thread-safe.
public interface BlobPlace {
  /// The file that has the bytes of a version while some are missing. Its folder exists.
  ///
  /// @param version the version as the file's store names it
  Path incomplete(Location.Remote file, String version);

  /// A file that processes lock while they begin an incomplete file.
  Path lock(Path incomplete);

  /// Whether the file was published already, so that the cache does not begin it again.
  boolean isPublished(Path incomplete);

  /// Publishes a file after all its bytes are on the disk. The incomplete file must stay under its
  /// name until [#closed] is called.
  ///
  /// @throws dev.gantry.core.TransferException if the disk fails
  void whole(Path incomplete);

  /// The cache calls this if the disk failed when a file had all its bytes, so that this process
  /// does not publish the file.
  void failed(Path incomplete);

  /// The cache calls this after this process has closed an incomplete file.
  void closed(Path incomplete);
}

// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.cache;

import dev.gantry.core.Location;
import java.nio.file.Path;

/// Names the files that a [RemoteCache] fills, so that other programs find them. Thread-safe.
public interface BlobPlace {
  /// The file that has a version's bytes while some are missing. Its folder is there.
  ///
  /// @param version as the file's store says it
  Path incomplete(Location.Remote file, String version);

  /// A file that processes lock while they begin an incomplete file.
  Path lock(Path incomplete);

  /// Whether a file was published, so that it is not begun again.
  boolean isPublished(Path incomplete);

  /// Publishes a file whose bytes are all on the disk. The incomplete file must stay until [#closed].
  ///
  /// @throws dev.gantry.core.TransferException if the disk fails
  void whole(Path incomplete);

  /// Runs when this process has closed an incomplete file.
  void closed(Path incomplete);
}

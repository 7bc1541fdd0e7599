// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.hub;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.store.PosixFile;
import dev.gantry.core.spi.ReadRequest;
import dev.gantry.core.spi.StoredFile;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.regex.Pattern;

/// The state of a file of the hub: the same whether its bytes come from the hub or from the cache.
///
/// @param etag the hub's name for the bytes: their SHA-256, or git's hash
record HubVersion(String etag, long size) {
  private static final Pattern GIT = Pattern.compile("[0-9a-f]{40}");
  private static final Pattern LARGE = Pattern.compile("[0-9a-f]{64}");

  /// Whether `bytes` have the hash that the ETag states; true for an ETag that is not a hash.
  boolean matches(byte[] bytes) {
    if (!GIT.matcher(etag).matches() && !LARGE.matcher(etag).matches()) {
      return true;
    }
    try {
      MessageDigest digest =
          MessageDigest.getInstance(LARGE.matcher(etag).matches() ? "SHA-256" : "SHA-1");
      if (GIT.matcher(etag).matches()) {
        digest.update(("blob " + bytes.length + "\0").getBytes(StandardCharsets.US_ASCII));
      }
      return HexFormat.of().formatHex(digest.digest(bytes)).equals(etag);
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every Java platform has SHA-1 and SHA-256", e);
    }
  }

  /// A file that the cache has.
  static final class Cached extends PosixFile {
    private final HubVersion version;

    /// @param etag the hub's name for the bytes
    Cached(FileCalls calls, Path file, CachePolicy policy, String etag) {
      super(calls, file, policy);
      version = new HubVersion(etag, size());
    }

    @Override
    public Object identity() {
      return version;
    }
  }

  /// A file whose bytes come from the hub.
  ///
  /// @param bytes the source of the bytes, which is closed with this file
  /// @param whenClosed an action to run when this file is closed
  record Coming(HubVersion state, StoredFile bytes, Runnable whenClosed) implements StoredFile {
    @Override
    public long size() {
      return state.size();
    }

    @Override
    public Object identity() {
      return state;
    }

    @Override
    public String version() {
      return state.etag();
    }

    @Override
    public int requestsAtOnce() {
      return bytes.requestsAtOnce();
    }

    @Override
    public void read(ReadRequest request) {
      bytes.read(request);
    }

    @Override
    public void close() {
      try {
        bytes.close();
      } finally {
        whenClosed.run();
      }
    }
  }
}

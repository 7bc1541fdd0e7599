// SPDX-License-Identifier: Apache-2.0
package dev.gantry.s3.internal;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.objects.ObjectName;
import dev.gantry.core.spi.StoredFile;
import dev.gantry.core.spi.WritableStore;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;
import software.amazon.awssdk.services.s3.model.MultipartUpload;

/// Objects at `s3://bucket/key`. The AWS SDK finds the credentials, region, profile and endpoint.
public final class S3Store implements WritableStore {
  private final S3Settings settings;
  private @Nullable S3Clients clients;
  private boolean closed;

  /// Called by [java.util.ServiceLoader].
  public S3Store() {
    this(S3Settings.DEFAULT);
  }

  S3Store(S3Settings settings) {
    this.settings = settings;
  }

  @Override
  public Set<String> schemes() {
    return Set.of("s3");
  }

  @Override
  public StoredFile open(Location file, CachePolicy policy) {
    ObjectName name = ObjectName.ofObject(file);
    return S3File.open(clients(), file, name);
  }

  @Override
  public Optional<List<Location>> list(Location folder) {
    return Optional.of(clients().list(folder, ObjectName.of(folder).folder()));
  }

  @Override
  public List<Entry> below(Location folder) {
    ObjectName name = ObjectName.of(folder).folder();
    return clients().objects(folder, name, null).stream()
        .map(object -> new Entry(object.key().substring(name.key().length()), object.size()))
        .toList();
  }

  @Override
  public void upload(Path file, Location target) {
    S3Upload.run(clients(), file, target);
  }

  @Override
  public void remove(Location file) {
    clients().delete(file, ObjectName.ofObject(file));
  }

  @Override
  public void endUploads(Location folder, Predicate<String> names) {
    ObjectName name = ObjectName.of(folder).folder();
    for (MultipartUpload upload : clients().begun(folder, name)) {
      if (names.test(upload.key().substring(name.key().length()))) {
        clients().abort(folder, name.bucket(), upload.key(), upload.uploadId());
      }
    }
  }

  private synchronized S3Clients clients() {
    if (closed) {
      throw new MisuseException("this session is closed");
    }
    S3Clients present = clients;
    if (present == null) {
      present = S3Clients.open(settings);
      clients = present;
    }
    return present;
  }

  @Override
  public synchronized void close() {
    closed = true;
    if (clients != null) {
      clients.close();
      clients = null;
    }
  }
}

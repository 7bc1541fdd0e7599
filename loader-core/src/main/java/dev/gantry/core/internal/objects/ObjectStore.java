// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.objects;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Failure;
import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.http.HttpCalls;
import dev.gantry.core.internal.http.HttpStore;
import dev.gantry.core.internal.threads.WorkerThreads;
import dev.gantry.core.spi.Store;
import dev.gantry.core.spi.StoredFile;
import java.io.IOException;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandler;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/// Objects in the buckets of a service, as `SCHEME://BUCKET/KEY`. They are read over HTTP, with
/// the headers that the service needs. Thread-safe.
abstract class ObjectStore implements Store {
  private static final Duration PAGE = Duration.ofSeconds(30);
  private static final long MAX_PAGE_BYTES = 64L << 20;
  private static final int MAX_PAGES = 10_000;
  private static final BodyHandler<String> TEXT =
      BodyHandlers.limiting(BodyHandlers.ofString(), MAX_PAGE_BYTES);

  private final String scheme;
  private final Function<String, @Nullable String> variables;
  private final HttpStore http = new HttpStore();
  private @Nullable ObjectService service;
  private boolean closed;

  /// @param variables gives a setting's value; null for a setting that is not set
  ObjectStore(String scheme, Function<String, @Nullable String> variables) {
    this.scheme = scheme;
    this.variables = variables;
  }

  /// Makes the service; called when the first file is opened.
  ///
  /// @throws MisuseException if a setting is wrong
  abstract ObjectService service(Function<String, @Nullable String> settings, HttpStore client);

  private synchronized ObjectService service() {
    if (closed) {
      throw new MisuseException("this session is closed");
    }
    ObjectService present = service;
    if (present == null) {
      present = service(variables, http);
      service = present;
    }
    return present;
  }

  @Override
  public Set<String> schemes() {
    return Set.of(scheme);
  }

  @Override
  public StoredFile open(Location file, CachePolicy policy) {
    ObjectName name = ObjectName.ofObject(file);
    ObjectService asked = service();
    try {
      return http.open((Location.Remote) file, asked.address(name), asked, false);
    } catch (TransferException e) {
      if (e.failure() instanceof Failure.Remote(int status, String reason)
          && !asked.advice(status).isEmpty()) {
        throw new TransferException(
            "GET",
            file.toString(),
            new Failure.Remote(status, reason + ": " + asked.advice(status)),
            e);
      }
      throw e;
    }
  }

  @Override
  public Optional<List<Location>> list(Location folder) {
    ObjectName name = ObjectName.of(folder).folder();
    ObjectService asked = service();
    List<Location> found = new ArrayList<>();
    for (String key : keys(folder, name.key(), after -> page(asked, folder, name, after))) {
      found.add(new ObjectName(name.bucket(), key).location(scheme));
    }
    return Optional.of(found);
  }

  /// Returns the keys of all pages that lie in a folder.
  ///
  /// @param prefix the beginning of the folder's keys
  /// @param pages asks for the page at a marker; the marker is empty for the first page
  static List<String> keys(
      Location folder, String prefix, Function<String, ObjectService.Page> pages) {
    List<String> found = new ArrayList<>();
    String after = "";
    for (int i = 0; i == 0 || !after.isEmpty(); i++) {
      ObjectService.Page page = pages.apply(after);
      for (String key : page.keys()) {
        // The folder itself is left out: some programs make it as an empty object.
        if (key.startsWith(prefix) && !key.endsWith("/")) {
          found.add(key);
        }
      }
      if (!page.next().isEmpty() && (i == MAX_PAGES - 1 || page.next().equals(after))) {
        throw failure(
            folder,
            0,
            "the service's list goes on where it was, or has more than " + MAX_PAGES + " pages");
      }
      after = page.next();
    }
    return found;
  }

  private ObjectService.Page page(
      ObjectService asked, Location folder, ObjectName name, String after) {
    try {
      HttpCalls calls = new HttpCalls(http, asked, _ -> true);
      HttpResponse<String> answer = calls.send("GET", asked.list(name, after), TEXT, PAGE, true);
      int status = answer.statusCode();
      if (status == 200) {
        return asked.page(answer.body());
      }
      String advice = asked.advice(status);
      throw failure(folder, status, advice.isEmpty() ? "the service refused" : advice);
    } catch (IOException e) {
      throw failure(folder, 0, "the service was not reached: " + HttpCalls.reason(e));
    } catch (InterruptedException _) {
      Thread.currentThread().interrupt();
      throw WorkerThreads.interrupted("LIST", folder.toString());
    }
  }

  private static TransferException failure(Location folder, int status, String reason) {
    return new TransferException("LIST", folder.toString(), new Failure.Remote(status, reason));
  }

  @Override
  public synchronized void close() {
    closed = true;
    http.close();
  }
}

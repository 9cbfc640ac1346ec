/* The limits file, read as strictly as src/fairlead/wire/kubelet/limits_file.py reads it. */
#include "limits.h"

#include "sys.h"

struct cursor {
    const char *at;
    const char *end;
};

static int word(struct cursor *line, const char *expected) {
    const char *at = line->at;
    for (; *expected; expected++, at++) {
        if (at == line->end || *at != *expected) {
            return 0;
        }
    }
    line->at = at;
    return 1;
}

/* Digits without leading zeros, 18 at most. */
static int number(struct cursor *line, uint64_t *into) {
    const char *begin = line->at;
    uint64_t value = 0;
    while (line->at < line->end && *line->at >= '0' && *line->at <= '9') {
        value = value * 10 + (uint64_t)(*line->at - '0');
        line->at++;
        if (line->at - begin > 18) {
            return 0;
        }
    }
    if (line->at == begin || (*begin == '0' && line->at - begin > 1)) {
        return 0;
    }
    *into = value;
    return 1;
}

/* A text that ends at a blank or at the end of the line, with a 0 behind it. */
static int text(struct cursor *line, char *into, size_t most, int may_have_blanks) {
    size_t size = 0;
    while (line->at < line->end && (may_have_blanks || *line->at != ' ')) {
        unsigned char letter = (unsigned char)*line->at++;
        if (size + 1 >= most || letter < ' ' || letter == 0x7f) {
            return 0;
        }
        into[size++] = (char)letter;
    }
    into[size] = 0;
    return size > 0;
}

/* The line `view`, once. */
static int view_line(struct cursor line, struct limits *into) {
    if (into->is_view || !word(&line, "view") || line.at != line.end) {
        return 0;
    }
    into->is_view = 1;
    return 1;
}

static int same(const char *one, const char *other) {
    while (*one && *one == *other) {
        one++, other++;
    }
    return *one == *other;
}

static int gpu_line(struct cursor line, struct limits *into) {
    if (into->count >= REGION_GPUS) {
        return 0;
    }
    struct gpu_limit *gpu = &into->gpus[into->count];
    if (!word(&line, "gpu ") || !text(&line, gpu->uuid, sizeof gpu->uuid, 0) ||
        gpu->uuid[0] != 'G' || gpu->uuid[1] != 'P' || gpu->uuid[2] != 'U' ||
        gpu->uuid[3] != '-' || !gpu->uuid[4] ||
        !word(&line, " limit_bytes ") || !number(&line, &gpu->bytes) ||
        !word(&line, " core_percent ") || !number(&line, &gpu->core_percent) ||
        !word(&line, " context_bytes ") || !number(&line, &gpu->context_bytes) ||
        line.at != line.end || gpu->core_percent > 100) {
        return 0;
    }
    for (uint32_t other = 0; other < into->count; other++) {
        if (same(into->gpus[other].uuid, gpu->uuid)) {
            return 0;
        }
    }
    into->count++;
    return 1;
}

uint32_t limits_parse(const char *all, size_t size, struct limits *into) {
    struct cursor rest = {all, all + size};
    uint32_t count = 0;
    into->count = 0;
    into->is_view = 0;
    into->region[0] = 0;
    while (rest.at < rest.end) {
        struct cursor line = {rest.at, rest.at};
        count++;
        while (line.end < rest.end && *line.end != '\n') {
            line.end++;
        }
        if (line.end == rest.end) {
            return count;
        }
        rest.at = line.end + 1;
        if (count == 1) {
            if (!word(&line, "version 1") || line.at != line.end) {
                return count;
            }
        } else if (!gpu_line(line, into) && !view_line(line, into)) {
            if (into->region[0] || !word(&line, "region ") || line.at == line.end ||
                *line.at != '/' || !text(&line, into->region, sizeof into->region, 1)) {
                return count;
            }
        }
    }
    return count == 0 || !into->region[0] ? count + 1 : 0;
}

int limits_read(const char *path, struct limits *into) {
    long fd = sys_open(path, SYS_O_RDONLY);
    if (fd == -2 || fd == -20) { /* ENOENT, ENOTDIR */
        return 1;
    }
    if (fd < 0) {
        return -1;
    }
    char *all = sys_map(LIMITS_MOST_BYTES, -1);
    if (!all) {
        sys_close(fd);
        return -1;
    }
    size_t size = 0;
    long more;
    while ((more = sys_read(fd, all + size, LIMITS_MOST_BYTES - size)) > 0) {
        size += (size_t)more;
    }
    sys_close(fd);
    int answer = more < 0 || size == LIMITS_MOST_BYTES || limits_parse(all, size, into) ? -1 : 0;
    sys_unmap(all, LIMITS_MOST_BYTES);
    return answer;
}

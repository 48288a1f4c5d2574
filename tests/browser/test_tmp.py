from playwright.sync_api import expect
def test_x(visit):
    visit.page.set_viewport_size({"width":1280,"height":720})
    visit.open()
    p=visit.page
    p.screenshot(path="/tmp/s0.png")
    visit.go("Learn"); p.screenshot(path="/tmp/s1.png")
    p.get_by_role("button", name="A row of attention").click(); visit.idle(); p.wait_for_timeout(1500); visit.idle()
    print(p.url); p.screenshot(path="/tmp/s2.png")
    for i in range(2):
        p.get_by_role("button", name="Next").click(); visit.idle()
    print(p.url)
    p.screenshot(path="/tmp/s3.png")
    p.emulate_media(color_scheme="dark"); visit.settle(); p.screenshot(path="/tmp/s3d.png"); p.emulate_media(color_scheme="light")
    p.locator(".st-key-lesson_region .stButton button").first.click(); visit.idle()
    p.screenshot(path="/tmp/s4.png")
    p.reload(); visit.idle(); p.wait_for_timeout(1500); visit.idle(); p.screenshot(path="/tmp/s5.png")
    print(p.url)
    p.get_by_role("button", name="Next").click(); visit.idle()
    p.get_by_text("Present",exact=True).click(); visit.idle(); p.screenshot(path="/tmp/s6.png")
    p.keyboard.press("Escape"); visit.settle()
    p.get_by_role("button", name="Leave",exact=True).click(); visit.idle()
    print(p.url); p.screenshot(path="/tmp/s7.png")
